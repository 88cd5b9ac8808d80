CREATE TABLE `one_time_links` (
	`id` text PRIMARY KEY NOT NULL,
	`purpose` text NOT NULL,
	`account_id` text,
	`email` text,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX `one_time_links_account_id` ON `one_time_links` (`account_id`);--> statement-breakpoint
CREATE INDEX `one_time_links_expires_at` ON `one_time_links` (`expires_at`);--> statement-breakpoint
CREATE TABLE `passkeys` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`public_key` blob NOT NULL,
	`counter` integer NOT NULL,
	`transports` text NOT NULL,
	`name` text NOT NULL,
	`backed_up` integer NOT NULL,
	`created_at` integer NOT NULL,
	`used_at` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE INDEX `passkeys_account_id` ON `passkeys` (`account_id`);--> statement-breakpoint
CREATE TABLE `second_factors` (
	`account_id` text PRIMARY KEY NOT NULL,
	`sealed_secret` text NOT NULL,
	`confirmed_at` integer,
	`used_step` integer,
	`recovery_hashes` text NOT NULL,
	`created_at` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `__new_accounts` (
	`id` text PRIMARY KEY NOT NULL,
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
INSERT INTO `__new_accounts`("id", "username", "email", "password_hash", "claims", "seeded", "locked_at", "created_at", "updated_at") SELECT "id", "username", "email", "password_hash", "claims", "seeded", NULL, "created_at", "updated_at" FROM `accounts`;--> statement-breakpoint
DROP TABLE `accounts`;--> statement-breakpoint
ALTER TABLE `__new_accounts` RENAME TO `accounts`;--> statement-breakpoint
CREATE UNIQUE INDEX `accounts_username` ON `accounts` (`username`);--> statement-breakpoint
CREATE UNIQUE INDEX `accounts_email` ON `accounts` (`email`);--> statement-breakpoint
ALTER TABLE `interactions` ADD `half_sign_in` text;--> statement-breakpoint
ALTER TABLE `interactions` ADD `challenge` text;--> statement-breakpoint
ALTER TABLE `sessions` ADD `browser` text;--> statement-breakpoint
ALTER TABLE `sessions` ADD `signed_in_from` text;--> statement-breakpoint
CREATE INDEX `audit_events_account_id` ON `audit_events` (`account_id`,`seq`);--> statement-breakpoint
CREATE INDEX `grants_account_id` ON `grants` (`account_id`);