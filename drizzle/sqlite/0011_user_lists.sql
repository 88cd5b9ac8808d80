CREATE INDEX `users_locked` ON `users` (`seq`) WHERE locked_at is not null;--> statement-breakpoint
CREATE INDEX `users_unlocked` ON `users` (`seq`) WHERE locked_at is null;