CREATE TABLE `accounts` (
	`id` text PRIMARY KEY NOT NULL,
	`username` text NOT NULL,
	`email` text,
	`password_hash` text NOT NULL,
	`claims` text NOT NULL,
	`seeded` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `accounts_username` ON `accounts` (`username`);--> statement-breakpoint
CREATE UNIQUE INDEX `accounts_email` ON `accounts` (`email`);--> statement-breakpoint
CREATE TABLE `clients` (
	`id` text PRIMARY KEY NOT NULL,
	`origin` text NOT NULL,
	`issued_at` integer NOT NULL,
	`used_at` integer NOT NULL,
	`metadata` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX `clients_never_used` ON `clients` (`issued_at`) WHERE origin = 'registered' and used_at = issued_at;--> statement-breakpoint
CREATE TABLE `consents` (
	`account_id` text NOT NULL,
	`client_id` text NOT NULL,
	`allowed` text NOT NULL,
	`granted_at` integer NOT NULL,
	PRIMARY KEY(`account_id`, `client_id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `consents_client_id` ON `consents` (`client_id`);--> statement-breakpoint
CREATE TABLE `grants` (
	`id` blob PRIMARY KEY NOT NULL,
	`secret` blob NOT NULL,
	`client_id` text NOT NULL,
	`account_id` text NOT NULL,
	`scope` text NOT NULL,
	`resource` text NOT NULL,
	`redirect_uri` text NOT NULL,
	`redirect_uri_sent` integer NOT NULL,
	`code_challenge` blob,
	`nonce` blob,
	`authenticated_at` integer NOT NULL,
	`methods` text NOT NULL,
	`auth_time_owed` integer NOT NULL,
	`claims` text,
	`approved_at` integer NOT NULL,
	`code_expires_at` integer NOT NULL,
	`seq` integer NOT NULL,
	`rotated_at` integer,
	`refresh_expires_at` integer,
	`absolute_expires_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`revoked_at` integer
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `interactions` (
	`id` text PRIMARY KEY NOT NULL,
	`browser_hash` text NOT NULL,
	`request` text NOT NULL,
	`authenticated_session_id` text,
	`account_chosen` integer NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX `interactions_expires_at` ON `interactions` (`expires_at`);--> statement-breakpoint
CREATE TABLE `keys` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`algorithm` text NOT NULL,
	`public_jwk` text,
	`sealed_private` text NOT NULL,
	`created_at` integer NOT NULL,
	`active_at` integer NOT NULL,
	`retired_at` integer
) STRICT;
--> statement-breakpoint
CREATE TABLE `revoked_access_tokens` (
	`grant_id` blob NOT NULL,
	`token_id` text NOT NULL,
	`expires_at` integer NOT NULL,
	PRIMARY KEY(`grant_id`, `token_id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `revoked_access_tokens_expires_at` ON `revoked_access_tokens` (`expires_at`);--> statement-breakpoint
CREATE TABLE `sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`authenticated_at` integer NOT NULL,
	`methods` text NOT NULL,
	`created_at` integer NOT NULL,
	`idle_expires_at` integer NOT NULL,
	`expires_at` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX `sessions_account_id` ON `sessions` (`account_id`);--> statement-breakpoint
CREATE INDEX `sessions_idle_expires_at` ON `sessions` (`idle_expires_at`);--> statement-breakpoint
CREATE TABLE `throttles` (
	`key` blob PRIMARY KEY NOT NULL,
	`failures` integer NOT NULL,
	`expires_at` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `throttles_expires_at` ON `throttles` (`expires_at`);