import { defineConfig } from 'drizzle-kit'

// biome-ignore lint/style/noDefaultExport: the form drizzle-kit reads
export default defineConfig({
  dialect: 'sqlite',
  schema: './src/storage/sqlite/schema.ts',
  out: './drizzle/sqlite',
})
