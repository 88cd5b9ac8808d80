import type { Command } from 'commander'
import type { OperatorClientMembers } from '../clients/core-members.ts'
import { clientOfRecipe, type Recipe, readRecipe, settingsOf, weaknessesOf } from '../clients/recipes.ts'
import { WrongUsage } from './failure.ts'
import type { ServerFlags } from './files/open-target.ts'
import { addYesFlag } from './flags.ts'
import type { Json } from './operate.ts'
import { confirmOrAbort } from './operator.ts'

/** The flags of a client that is added for a well-known app. */
export interface RecipeFlags extends ServerFlags {
  readonly yes?: true
  readonly for?: string
  readonly url?: string
}

/** Adds the flags by which a client is added for a well-known app. */
export function addRecipeFlags(command: Command): Command {
  return addYesFlag(
    command
      .option('--for <app>', 'take what a well-known app needs from its recipe; docs/apps.md lists them')
      .option('--url <url>', 'the https address of that app'),
  )
}

/**
 * Returns the members of a new client: from the recipe, and from flags. Asks before anything is weaker
 * than usual.
 */
export async function membersOfNew(
  flags: RecipeFlags,
  members: OperatorClientMembers,
): Promise<{ readonly members: OperatorClientMembers; readonly recipe?: Recipe }> {
  if (flags.for === undefined) {
    if (flags.url !== undefined) throw new WrongUsage('--url is for --for; name the redirect URIs instead')
    if (members.client_name === undefined)
      throw new WrongUsage("required option '--name <text>' not specified")
    return { members }
  }
  const all = clientOfRecipe(flags.for, flags.url, members)
  const recipe = readRecipe(flags.for)
  const weak = weaknessesOf(recipe)
  for (const line of weak) process.stderr.write(`${recipe.name}: ${line}\n`)
  if (weak.length > 0) await confirmOrAbort(flags, `Add ${recipe.name} like this?`, 'nothing was added')
  return { members: all, recipe }
}

/** Returns the settings of the app, as lines to paste. */
export function settingsText(
  recipe: Recipe,
  issuer: string,
  { url }: RecipeFlags,
  { client_id, client_secret }: Json,
): string {
  const secret = client_secret === undefined ? undefined : String(client_secret)
  const credentials = { client_id: String(client_id), client_secret: secret }
  const lines = settingsOf(recipe, { issuer, url: url?.replace(/\/$/, ''), ...credentials })
  const tried = recipe.tried === undefined ? 'not tried' : `tried with ${recipe.tried.version}`
  const head = `The recipe is for ${recipe.name} ${recipe.version} (${tried}). Set in ${recipe.settings.where}:`
  return ['', head, ...lines.map((line) => `  ${line}`), ...(recipe.notes ?? []), ''].join('\n')
}
