CREATE TABLE `records` (
	`kind` text NOT NULL,
	`id` blob NOT NULL,
	`user_id` text,
	`client_id` text,
	`made_at` integer,
	`expires_at` integer,
	`body` text NOT NULL,
	PRIMARY KEY(`kind`, `id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `records` SELECT 'passkey', CAST(id AS blob), account_id, NULL, created_at, NULL, json_object('id', id, 'userId', account_id, 'publicKey', base64url(public_key), 'counter', counter, 'transports', json(CASE transports WHEN '' THEN '[]' ELSE '[' || replace(json_quote(transports), ' ', '","') || ']' END), 'name', name, 'backedUp', json(iif(backed_up, 'true', 'false')), 'createdAt', created_at, 'usedAt', used_at) FROM `passkeys`;
--> statement-breakpoint
INSERT INTO `records` SELECT 'secondFactor', CAST(account_id AS blob), account_id, NULL, created_at, NULL, json_patch('{}', json_object('userId', account_id, 'sealedSecret', sealed_secret, 'confirmedAt', confirmed_at, 'usedStep', used_step, 'recoveryHashes', json(CASE recovery_hashes WHEN '' THEN '[]' ELSE '[' || replace(json_quote(recovery_hashes), ' ', '","') || ']' END), 'createdAt', created_at)) FROM `second_factors`;
--> statement-breakpoint
INSERT INTO `records` SELECT 'link ' || purpose, CAST(id AS blob), account_id, NULL, created_at, expires_at, json_patch('{}', json_object('id', id, 'purpose', purpose, 'userId', account_id, 'email', email, 'createdAt', created_at, 'expiresAt', expires_at)) FROM `one_time_links`;
--> statement-breakpoint
INSERT INTO `records` SELECT 'interaction', CAST(id AS blob), NULL, NULL, created_at, expires_at, json_patch('{}', json_object('id', id, 'browserHash', browser_hash, 'request', json(request), 'pendingSecondFactor', CASE WHEN half_sign_in IS NOT NULL THEN json_object('userId', coalesce(json_extract(half_sign_in, '$.userId'), json_extract(half_sign_in, '$.accountId')), 'password', json_extract(half_sign_in, '$.password'), 'at', json_extract(half_sign_in, '$.at')) END, 'challenge', challenge, 'authenticatedSessionId', authenticated_session_id, 'userChosen', json(iif(account_chosen, 'true', 'false')), 'createdAt', created_at, 'expiresAt', expires_at)) FROM `interactions`;
--> statement-breakpoint
INSERT INTO `records` SELECT 'consent', CAST(account_id || ' ' || client_id AS blob), account_id, client_id, granted_at, NULL, json_object('userId', account_id, 'clientId', client_id, 'allowed', json(allowed), 'grantedAt', granted_at) FROM `consents`;
--> statement-breakpoint
INSERT INTO `records` SELECT 'throttle', key, NULL, NULL, NULL, expires_at, json_object('key', CAST(key AS text), 'failures', failures, 'expiresAt', expires_at) FROM `throttles` WHERE instr(key, x'00') = 0;
--> statement-breakpoint
DROP TABLE `passkeys`;
--> statement-breakpoint
DROP TABLE `second_factors`;
--> statement-breakpoint
DROP TABLE `one_time_links`;
--> statement-breakpoint
DROP TABLE `interactions`;
--> statement-breakpoint
DROP TABLE `consents`;
--> statement-breakpoint
DROP TABLE `throttles`;
--> statement-breakpoint
CREATE INDEX `records_user_id` ON `records` (`user_id`,`kind`) WHERE user_id is not null;
--> statement-breakpoint
CREATE INDEX `records_client_id` ON `records` (`client_id`) WHERE client_id is not null;
--> statement-breakpoint
CREATE INDEX `records_expires_at` ON `records` (`expires_at`) WHERE expires_at is not null;
--> statement-breakpoint
ALTER TABLE `accounts` RENAME TO `users`;
--> statement-breakpoint
DROP INDEX `accounts_id`;
--> statement-breakpoint
DROP INDEX `accounts_username`;
--> statement-breakpoint
DROP INDEX `accounts_email`;
--> statement-breakpoint
DROP INDEX `accounts_seeded`;
--> statement-breakpoint
CREATE UNIQUE INDEX `users_id` ON `users` (`id`);
--> statement-breakpoint
CREATE UNIQUE INDEX `users_username` ON `users` (`username`);
--> statement-breakpoint
CREATE UNIQUE INDEX `users_email` ON `users` (`email`);
--> statement-breakpoint
CREATE INDEX `users_seeded` ON `users` (`username`) WHERE seeded;
--> statement-breakpoint
DROP INDEX `sessions_account_id`;
--> statement-breakpoint
ALTER TABLE `sessions` RENAME COLUMN `account_id` TO `user_id`;
--> statement-breakpoint
CREATE INDEX `sessions_user_id` ON `sessions` (`user_id`);
--> statement-breakpoint
DROP INDEX `grants_account_seq`;
--> statement-breakpoint
ALTER TABLE `grants` RENAME COLUMN `account_seq` TO `user_seq`;
--> statement-breakpoint
CREATE INDEX `grants_user_seq` ON `grants` (`user_seq`);
--> statement-breakpoint
DROP INDEX `audit_events_account_id`;
--> statement-breakpoint
ALTER TABLE `audit_events` RENAME COLUMN `account_id` TO `user_id`;
--> statement-breakpoint
CREATE INDEX `audit_events_user_id` ON `audit_events` (`user_id`,`seq`);
--> statement-breakpoint
ALTER TABLE `refusals` RENAME TO `rejections`;
--> statement-breakpoint
DROP INDEX `refusals_id`;
--> statement-breakpoint
CREATE UNIQUE INDEX `rejections_id` ON `rejections` (`id`);
