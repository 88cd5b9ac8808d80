// Copies, downloads and prints the recovery codes of this page. They never leave the browser: no request is sent.
const acts = document.querySelector('[data-recovery]')
const copied = acts?.querySelector('[role=status]')

const codes = () =>
  Array.from(document.querySelectorAll('.recovery code'), ({ textContent }) => `${textContent}\n`).join('')

const act = {
  async copy() {
    await navigator.clipboard.writeText(codes())
    copied.textContent = copied.dataset.done
  },
  download() {
    const url = URL.createObjectURL(new Blob([codes()], { type: 'text/plain;charset=utf-8' }))
    const link = Object.assign(document.createElement('a'), { href: url, download: acts.dataset.recovery })
    link.click()
    setTimeout(() => URL.revokeObjectURL(url), 60_000)
  },
  print() {
    window.print()
  },
}

if (acts) {
  // Browsers offer the clipboard in a secure context only.
  if (!navigator.clipboard) acts.querySelector('[data-act=copy]').remove()
  acts.hidden = false
  for (const button of acts.querySelectorAll('button')) {
    button.addEventListener('click', () => act[button.dataset.act]())
  }
}
