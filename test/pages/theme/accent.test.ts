import { readFileSync } from 'node:fs'
import t from 'tap'
import { accentFault, accentIcon, accentSheet } from '../../../src/pages/theme/accent.ts'
import { launchBrowser } from '../../helpers/chromium.ts'

/** Brands of every hue, pale, dark and grey. */
const brands =
  '#2c52b3 #ffeb3b #000000 #00a3e0 #c8102e #00843d #777777 #ff6600 #ff00ff #00ff00 #0000ff #ff0000 #00ffff #7b1fa2 #3e2723 #bdbdbd'.split(
    ' ',
  )
const parts = ['00', '40', '80', 'c0', 'ff']
const everyHue = parts.flatMap((red) =>
  parts.flatMap((green) => parts.map((blue) => `#${red}${green}${blue}`)),
)
/** Greys around the luminance at which the text of a button turns from white to black. */
const greys = ['#6f6f6f', '#747474', '#757575', '#767676', '#777777', '#1a1a1a', '#202020']
const accents = [...brands, ...everyHue, ...greys].filter((accent) => accentFault(accent) === undefined)

const browser = await launchBrowser()
t.teardown(() => browser.close())

type Colour = readonly [red: number, green: number, blue: number]

/** Runs in the page: the eight-bit colours that the browser shows for these tokens, for each stylesheet. */
const shown = `(sheets, tokens) => {
  const style = document.head.appendChild(document.createElement('style'))
  const probe = document.body.appendChild(document.createElement('i'))
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true })
  return sheets.map((sheet) => {
    style.textContent = sheet
    return tokens.map((token) => {
      probe.style.color = 'var(' + token + ')'
      canvas.fillStyle = getComputedStyle(probe).color
      canvas.fillRect(0, 0, 1, 1)
      return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)
    })
  })
}`

const tokens = ['--accent', '--accent-hover', '--on-accent', '--accent-ink', '--card', '--page', '--sunken']

async function shownColours(scheme: 'light' | 'dark', sheets: readonly string[]): Promise<Colour[][]> {
  const page = await browser.newPage({ colorScheme: scheme })
  const style = readFileSync(new URL('../../../views/style.css', import.meta.url), 'utf8')
  const whole = sheets.map((sheet) => style + sheet)
  return page.evaluate(`(${shown})(${JSON.stringify(whole)}, ${JSON.stringify(tokens)})`)
}

/** WCAG 2.2, relative luminance. */
function luminance(colour: Colour): number {
  const [red = 0, green = 0, blue = 0] = colour.map((part) =>
    part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4,
  )
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function contrast(one: Colour, other: Colour): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

function hex(colour: Colour): string {
  return `#${colour.map((part) => part.toString(16).padStart(2, '0')).join('')}`
}

t.test('contrast is computed as WCAG defines it', async (t) => {
  const [black, white] = [[0, 0, 0] as const, [255, 255, 255] as const]
  t.equal(contrast(black, white).toFixed(2), '21.00')
  t.equal(contrast(white, white).toFixed(2), '1.00')
  t.equal(contrast([119, 119, 119], white).toFixed(2), '4.48')
  t.equal(contrast([0, 0, 255], white).toFixed(2), '8.59')
  t.equal(contrast([255, 0, 0], black).toFixed(2), '5.25')
})

for (const scheme of ['light', 'dark'] as const) {
  t.test(`every accent has AA contrast on ${scheme} pages, as the browser shows it`, async (t) => {
    const found = await shownColours(scheme, ['', ...accents.map(accentSheet)])
    for (const [index, colours] of found.entries()) {
      const accent = accents[index - 1] ?? 'the shipped accent'
      const [fill, hover, onAccent, ink, ...grounds] = colours as [
        Colour,
        Colour,
        Colour,
        Colour,
        ...Colour[],
      ] // one for each token
      for (const surface of [fill, hover]) {
        const ratio = contrast(onAccent, surface)
        if (ratio < 4.5) t.fail(`${accent}: ${hex(onAccent)} on ${hex(surface)} has ${ratio}`)
      }
      for (const ground of grounds) {
        const ratio = contrast(ink, ground)
        if (ratio < 4.5) t.fail(`${accent}: ${hex(ink)} on ${hex(ground)} has ${ratio}`)
      }
      if (hex(hover) === hex(fill)) t.fail(`${accent}: pointing does not show`)
      if (scheme === 'light' && index > 0) t.equal(hex(fill), accent, 'a button has the very colour')
    }
    t.equal(found.length, accents.length + 1)
  })
}

t.test('the icon uses a shade of the accent', async (t) => {
  const icon = readFileSync(new URL('../../../views/icon.svg', import.meta.url), 'utf8')
  const page = await browser.newPage()
  await page.setContent(accentIcon(icon, '#c8102e'))
  const stroke = await page.evaluate("getComputedStyle(document.querySelector('path')).stroke")
  t.match(stroke, /^oklch\(0\.57 0\.2\d+ 2\d\./)
})

t.test('an accent with too little contrast on any page is rejected', async (t) => {
  const nearWhite = 'is too close to the white of the pages; choose a stronger colour, such as "#2c52b3"'
  const noColour = 'must be # and six hexadecimal digits in quotes, such as "#2c52b3", not'
  for (const [accent, fault] of [
    ['#ffffff', `#ffffff ${nearWhite}`],
    ['#d8dFE0', `#d8dFE0 ${nearWhite}`],
    ['red', `${noColour} "red"`],
    ['#abc', `${noColour} "#abc"`],
    ['#2c52b3;', `${noColour} "#2c52b3;"`],
  ] as const)
    t.equal(accentFault(accent), fault)
  for (const accent of [...brands, '#d7ffff', '#fafad2']) t.equal(accentFault(accent), undefined, accent)
})
