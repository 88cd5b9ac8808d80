ALTER TABLE "grants" ALTER COLUMN "user_seq" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "grants" RENAME COLUMN "claims" TO "extra";--> statement-breakpoint
UPDATE "grants" SET "extra" = '{' || concat_ws(',', CASE WHEN "extra" NOT LIKE '[[],[]%' THEN '"claims":{"userinfo":' || ("extra"::json -> 0)::text || ',"idToken":' || ("extra"::json -> 1)::text || '}' END, '"acr":' || ("extra"::json -> 2)::text) || '}' WHERE "extra" IS NOT NULL;
