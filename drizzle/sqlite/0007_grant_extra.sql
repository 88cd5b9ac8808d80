ALTER TABLE `grants` ALTER COLUMN `user_seq` DROP NOT NULL;--> statement-breakpoint
ALTER TABLE `grants` RENAME COLUMN `claims` TO `extra`;--> statement-breakpoint
UPDATE `grants` SET `extra` = json_patch('{}', json_object('claims', CASE WHEN `extra` NOT LIKE '[[],[]%' THEN json_object('userinfo', `extra` -> '$[0]', 'idToken', `extra` -> '$[1]') END, 'acr', `extra` ->> '$[2]')) WHERE `extra` IS NOT NULL;
