CREATE TABLE "audit_events" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"at" bigint NOT NULL,
	"name" text NOT NULL,
	"account_id" text,
	"client_id" text,
	"facts" text NOT NULL
);
