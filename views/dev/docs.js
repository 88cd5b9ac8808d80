// The page of the API description. The scopes of the sign-in are those that the example operations need.
const place = document.getElementById('swagger-ui')
const { description, redirect, client } = place.dataset
const ui = SwaggerUIBundle({
  url: description,
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
