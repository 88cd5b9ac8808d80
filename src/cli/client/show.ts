import { type LocationFlags, withStore } from '../open.ts'
import { printJson, printMembers } from '../print.ts'
import { describeClient } from './description.ts'
import { requireClient } from './known.ts'

/** `lychgate client show`: what is stored about a client; never its secret. */
export async function clientShow(
  clientId: string,
  flags: LocationFlags & { readonly json?: true },
): Promise<void> {
  await withStore(flags, async (store, config) => {
    const description = describeClient(requireClient(await store.find('client', clientId)), config)
    if (flags.json) printJson(description)
    else printMembers(description)
  })
}
