CREATE TABLE `refusals` (
	`seq` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`at` integer NOT NULL,
	`facts` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `refusals_id` ON `refusals` (`id`);--> statement-breakpoint
ALTER TABLE `grants` ADD `revoked_by` text;