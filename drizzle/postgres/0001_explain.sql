CREATE TABLE "refusals" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"id" text NOT NULL,
	"at" bigint NOT NULL,
	"facts" text NOT NULL,
	CONSTRAINT "refusals_id" UNIQUE("id")
);
--> statement-breakpoint
ALTER TABLE "grants" ADD COLUMN "revoked_by" text;