import { Type } from '@sinclair/typebox'
import { Recipe, readRecipe, recipeIds, weaknessesOf } from '../../clients/recipes.ts'
import { listed, type Operation, pageOfAll } from './operation.ts'
import { listQuery, pageOf } from './schema.ts'

const RecipeResource = Type.Object(
  {
    id: Type.String({ description: 'What `lychgate client add --for` names.' }),
    ...Recipe.properties,
    weaknesses: Type.Array(Type.String(), {
      description: 'What it makes weaker than usual, for you to confirm.',
    }),
  },
  { title: 'NamedRecipe' },
)

export const listRecipes: Operation = {
  operationId: 'listRecipes',
  area: 'clients',
  kind: 'list',
  url: '/recipes',
  delegates: false,
  summary: 'List what is known of well-known apps: the metadata of their clients, and their settings',
  response: pageOf(RecipeResource, 'Recipes'),
  querystring: listQuery({}),
  perform: (call) =>
    listed(
      call,
      async (rows) => pageOfAll(recipeIds(), String, rows),
      String,
      (id) => {
        const recipe = readRecipe(id)
        return { id, ...recipe, weaknesses: weaknessesOf(recipe) }
      },
    ),
}
