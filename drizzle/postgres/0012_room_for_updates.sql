ALTER TABLE "grants" SET (fillfactor = 85);--> statement-breakpoint
ALTER TABLE "records" SET (fillfactor = 85);