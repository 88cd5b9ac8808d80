UPDATE "audit_events" SET "name" = 'user-' || substr("name", 8) WHERE "name" LIKE 'person-%';
--> statement-breakpoint
UPDATE "audit_events" SET "facts" = '["user",' || substr("facts", 11) WHERE "facts" LIKE '["person",%';
--> statement-breakpoint
UPDATE "records" SET "kind" = 'link first-user', "body" = jsonb_set("body"::jsonb, '{purpose}', '"first-user"')::text WHERE "kind" = 'link first-person';
