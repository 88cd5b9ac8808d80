// Copies the text of the element before a button. Browsers offer the clipboard in a secure context only.
if (navigator.clipboard) {
  for (const button of document.querySelectorAll('button[data-copied]')) {
    const { textContent: label, dataset } = button
    button.hidden = false
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent)
      button.textContent = dataset.copied
      setTimeout(() => {
        button.textContent = label
      }, 2000)
    })
  }
}
