CREATE TABLE `__new_accounts` (
	`seq` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`username` text NOT NULL,
	`email` text,
	`password_hash` text,
	`claims` text NOT NULL,
	`seeded` integer NOT NULL,
	`locked_at` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
) STRICT;
--> statement-breakpoint
INSERT INTO `__new_accounts`("id", "username", "email", "password_hash", "claims", "seeded", "locked_at", "created_at", "updated_at") SELECT "id", "username", "email", "password_hash", "claims", "seeded", "locked_at", "created_at", "updated_at" FROM `accounts` ORDER BY "created_at", "id";--> statement-breakpoint
DROP TABLE `accounts`;--> statement-breakpoint
ALTER TABLE `__new_accounts` RENAME TO `accounts`;--> statement-breakpoint
CREATE UNIQUE INDEX `accounts_id` ON `accounts` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `accounts_username` ON `accounts` (`username`);--> statement-breakpoint
CREATE UNIQUE INDEX `accounts_email` ON `accounts` (`email`);--> statement-breakpoint
CREATE INDEX `accounts_seeded` ON `accounts` (`username`) WHERE seeded;--> statement-breakpoint
CREATE TABLE `__new_clients` (
	`seq` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`origin` text NOT NULL,
	`issued_at` integer NOT NULL,
	`used_at` integer NOT NULL,
	`metadata` text NOT NULL
) STRICT;
--> statement-breakpoint
INSERT INTO `__new_clients`("id", "origin", "issued_at", "used_at", "metadata") SELECT "id", "origin", "issued_at", "used_at", "metadata" FROM `clients` ORDER BY "issued_at", "id";--> statement-breakpoint
DROP TABLE `clients`;--> statement-breakpoint
ALTER TABLE `__new_clients` RENAME TO `clients`;--> statement-breakpoint
CREATE UNIQUE INDEX `clients_id` ON `clients` (`id`);--> statement-breakpoint
CREATE INDEX `clients_never_used` ON `clients` (`issued_at`) WHERE origin = 'registered' and used_at = issued_at;--> statement-breakpoint
CREATE INDEX `clients_idle` ON `clients` (`used_at`) WHERE origin = 'registered' and used_at > issued_at;--> statement-breakpoint
CREATE TABLE `__new_grants` (
	`id` blob PRIMARY KEY NOT NULL,
	`secret` blob NOT NULL,
	`client_seq` integer NOT NULL,
	`account_seq` integer NOT NULL,
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
	`approved_at` integer,
	`seq` integer NOT NULL,
	`rotated_at` integer,
	`refresh_expires_at` integer,
	`absolute_expires_at` integer NOT NULL,
	`expires_at` integer,
	`revoked_at` integer,
	`revoked_by` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `__new_grants`("id", "secret", "client_seq", "account_seq", "scope", "resource", "redirect_uri", "redirect_uri_sent", "code_challenge", "nonce", "authenticated_at", "methods", "auth_time_owed", "claims", "approved_at", "seq", "rotated_at", "refresh_expires_at", "absolute_expires_at", "expires_at", "revoked_at", "revoked_by") SELECT g."id", "secret", c."seq", a."seq", "scope", "resource", "redirect_uri", "redirect_uri_sent", CASE WHEN g."seq" = 0 THEN "code_challenge" ELSE substr("code_challenge", 1, 8) END, CASE WHEN g."seq" = 0 THEN "nonce" END, "authenticated_at", "methods", "auth_time_owed", g."claims", CASE WHEN substr(g."id", 1, 4) <> unhex(printf('%08X', "approved_at")) THEN "approved_at" END, g."seq", "rotated_at", "refresh_expires_at", "absolute_expires_at", nullif("expires_at", "refresh_expires_at"), "revoked_at", "revoked_by" FROM `grants` g JOIN `clients` c ON c."id" = g."client_id" JOIN `accounts` a ON a."id" = g."account_id" ORDER BY g."id";--> statement-breakpoint
DROP TABLE `grants`;--> statement-breakpoint
ALTER TABLE `__new_grants` RENAME TO `grants`;--> statement-breakpoint
CREATE INDEX `grants_account_seq` ON `grants` (`account_seq`);