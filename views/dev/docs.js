// The page of the API description. The scopes of the sign-in are those that the example operations need.
const place = document.getElementById('swagger-ui')
const { description, redirect, client, scope } = place.dataset
/**
 * Leaves the scheme by which this page obtains a token, with the scopes that are open to its client. Each other scheme is
 * a block of "Authorize" with boxes of its own: openIdConnect repeats every scope for flows that this server does not have.
 */
const withOneScheme = (whole) => {
  const { oauth2 } = whole.components.securitySchemes
  const { authorizationCode } = oauth2.flows
  const open = scope.split(' ')
  authorizationCode.scopes = Object.fromEntries(
    Object.entries(authorizationCode.scopes).filter(([name]) => open.includes(name)),
  )
  const isLeft = (each) => each.oauth2 !== undefined || Object.keys(each).length === 0
  for (const operations of Object.values(whole.paths))
    for (const operation of Object.values(operations))
      if (operation.security) operation.security = operation.security.filter(isLeft)
  return { ...whole, components: { ...whole.components, securitySchemes: { oauth2 } } }
}
const spec = withOneScheme(await (await fetch(description)).json())
const ui = SwaggerUIBundle({
  spec,
  domNode: place,
  deepLinking: true,
  oauth2RedirectUrl: redirect,
  validatorUrl: null,
})
ui.initOAuth({ clientId: client, scopes: 'openid', usePkceWithAuthorizationCodeGrant: true })
// The widget brings dark colours along, and wants to be told when to use them.
const dark = matchMedia('(prefers-color-scheme: dark)')
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', follow)
follow()
