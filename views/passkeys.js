// Passkeys, Web Authentication Level 3. data-request or data-create says what to ask the browser for; its
// answer goes into the form, which is sent like any other.
const form = document.querySelector('form[data-request], form[data-create]')
const button = form?.querySelector('button')

function bytes(text) {
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) =>
    letter.charCodeAt(0),
  )
}

function text(buffer) {
  const letters = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join('')
  return btoa(letters).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

function withBytes(options) {
  const named = (list) => list?.map((each) => ({ ...each, id: bytes(each.id) }))
  return {
    ...options,
    challenge: bytes(options.challenge),
    ...(options.user && { user: { ...options.user, id: bytes(options.user.id) } }),
    ...(options.allowCredentials && { allowCredentials: named(options.allowCredentials) }),
    ...(options.excludeCredentials && { excludeCredentials: named(options.excludeCredentials) }),
  }
}

function answer(credential) {
  const { response } = credential
  const members = ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle']
  const present = members.filter((name) => response[name])
  return JSON.stringify({
    id: credential.id,
    rawId: text(credential.rawId),
    type: credential.type,
    clientExtensionResults: {},
    response: {
      ...Object.fromEntries(present.map((name) => [name, text(response[name])])),
      ...(response.getTransports && { transports: response.getTransports() }),
    },
  })
}

function creationOf(text) {
  const options = withBytes(JSON.parse(text))
  const { user } = options
  // The first user has no name yet: it is the one in the form.
  const name = user.name || form.elements.username.value
  return { ...options, user: { ...user, name, displayName: user.displayName || name } }
}

let waiting

async function ask(mediation) {
  waiting?.abort()
  waiting = new AbortController()
  const { signal } = waiting
  const { request, create } = form.dataset
  const credential = create
    ? await navigator.credentials.create({ publicKey: creationOf(create), signal })
    : await navigator.credentials.get({ publicKey: withBytes(JSON.parse(request)), signal, mediation })
  form.elements.credential.value = answer(credential)
  HTMLFormElement.prototype.submit.call(form)
}

/** Whether the form is sent with a password instead: by its button, or by the Enter key in its field. */
function isWithPassword({ submitter }) {
  return (submitter ?? button) !== button || form.querySelector('[type=password]:focus') !== null
}

async function onSubmit(event) {
  if (isWithPassword(event)) return
  event.preventDefault()
  const failed = form.querySelector('[role=alert]')
  failed.hidden = true
  try {
    await ask('optional')
  } catch {
    failed.hidden = false
  }
}

if (form && window.PublicKeyCredential) {
  for (const without of document.querySelectorAll('[data-without-passkeys]')) without.remove()
  form.hidden = false
  const part = form.querySelector('[data-passkey]')
  if (part) part.hidden = false
  form.addEventListener('submit', onSubmit)
  button.disabled = false
  // The field for the name offers passkeys, if the browser can, without disturbing a user who types. Not after a failure:
  // a device that answers by itself would fail forever.
  if (document.querySelector('input[autocomplete~=webauthn]:not([aria-invalid])')) {
    PublicKeyCredential.isConditionalMediationAvailable?.().then(
      (can) => can && ask('conditional').catch(() => undefined),
    )
  }
}
