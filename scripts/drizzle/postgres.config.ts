import { defineConfig } from 'drizzle-kit'

// biome-ignore lint/style/noDefaultExport: the form drizzle-kit reads
export default defineConfig({
  dialect: 'postgresql',
  schema: './src/storage/postgres/schema.ts',
  out: './drizzle/postgres',
})
