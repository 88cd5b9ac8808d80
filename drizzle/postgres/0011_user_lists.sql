ALTER TABLE "users" ALTER COLUMN "username" SET DATA TYPE text collate "C";--> statement-breakpoint
ALTER TABLE "users" ALTER COLUMN "email" SET DATA TYPE text collate "C";--> statement-breakpoint
CREATE INDEX "users_locked" ON "users" USING btree ("seq") WHERE locked_at is not null;--> statement-breakpoint
CREATE INDEX "users_unlocked" ON "users" USING btree ("seq") WHERE locked_at is null;