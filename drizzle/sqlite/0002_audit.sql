CREATE TABLE `audit_events` (
	`seq` integer PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`name` text NOT NULL,
	`account_id` text,
	`client_id` text,
	`facts` text NOT NULL
) STRICT;
