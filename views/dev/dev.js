// Copy buttons, the time machine, and live pages. Everything else works without JavaScript.
for (const button of document.querySelectorAll('[data-copy]')) button.hidden = false
for (const panel of document.querySelectorAll('[data-script]')) panel.hidden = false

document.addEventListener('click', async ({ target }) => {
  const button = target instanceof Element ? target.closest('button') : null
  if (button?.dataset.copy) await copy(button)
  else if (button?.dataset.send) await send(button.dataset)
  else if (button && 'open' in button.dataset) {
    for (const details of document.querySelectorAll('.exchange')) details.open = true
  }
})

async function copy(button) {
  const label = button.textContent
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent)
  button.textContent = 'Copied'
  setTimeout(() => {
    button.textContent = label
  }, 1500)
}

async function send({ send: path, method = 'POST', body }) {
  const headers = body ? { 'content-type': 'application/json' } : {}
  const answer = await fetch(path, { method, headers, body })
  if (answer.ok) location.reload()
  else document.getElementById('failure').textContent = (await answer.json()).error_description
}

// A link to a closed element opens it.
function openTarget() {
  const target = document.getElementById(location.hash.slice(1))
  const details = target?.querySelector('details.exchange') ?? target?.closest('details')
  if (details) details.open = true
}
addEventListener('hashchange', openTarget)
openTarget()

function showTools() {
  for (const shown of document.querySelectorAll('.live, [data-open]')) shown.hidden = false
}

const part = document.querySelector('[data-live]')
if (part) {
  const style = document.querySelector('link[href*="/_dev/assets/"]')
  const events = new EventSource(new URL('../flows/events', style.href))
  events.addEventListener('open', showTools)
  let waiting
  events.addEventListener('message', () => {
    clearTimeout(waiting)
    waiting = setTimeout(refresh, 150)
  })
  addEventListener('pagehide', () => events.close())
}

async function refresh() {
  const answer = await fetch(location.pathname)
  if (!answer.ok) return
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html')
  const name = part.dataset.live
  const next = fresh.querySelector(`[data-live="${name}"]`)
  // What the reader opened stays open, and what they closed stays closed.
  for (const details of part.querySelectorAll('details[id]')) {
    const same = next.querySelector(`#${CSS.escape(details.id)}`)
    if (same) same.open = details.open
  }
  const focused = document.activeElement?.closest('details[id]')?.id
  part.replaceChildren(...next.childNodes)
  if (focused) document.querySelector(`#${CSS.escape(focused)} > summary`)?.focus()
  showTools()
}
