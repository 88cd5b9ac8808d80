/** Returns statements that give a table four partitions by a hash of this column, as machines would have them. */
export function partitioned(table: string, key: string): string {
  const parts = [0, 1, 2, 3].map(
    (part) =>
      `create table ${table}_${part} partition of ${table} for values with (modulus 4, remainder ${part})`,
  )
  return [
    `alter table ${table} rename to whole`,
    `create table ${table} (like whole including all) partition by hash (${key})`,
    ...parts,
    'drop table whole',
  ].join('; ')
}
