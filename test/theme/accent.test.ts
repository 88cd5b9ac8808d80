import { readFileSync } from 'node:fs'
import t from 'tap'
import { accentFault, accentSheet, accentTones, grounds } from '../../src/pages/theme/accent.ts'
import { type Colour, contrast, parseColour } from '../../src/pages/theme/colour.ts'

const colour = (text: string): Colour => {
  const parsed = parseColour(text)
  if (parsed === undefined) throw new Error(`no colour: ${text}`)
  return parsed
}

/** Brands of every hue, pale, dark and grey. */
const accents =
  '#2c52b3 #ffeb3b #000000 #00a3e0 #c8102e #00843d #777777 #ff6600 #ff00ff #00ff00 #0000ff #ff0000 #00ffff #7b1fa2 #3e2723 #bdbdbd'.split(
    ' ',
  )

t.test('contrast is that of WCAG', async (t) => {
  for (const [one, other, expected] of [
    ['#000000', '#ffffff', '21.00'],
    ['#ffffff', '#ffffff', '1.00'],
    ['#777777', '#ffffff', '4.48'],
    ['#0000ff', '#ffffff', '8.59'],
    ['#ff0000', '#000000', '5.25'],
  ] as const)
    t.equal(contrast(colour(one), colour(other)).toFixed(2), expected, `${one} ${other}`)
})

t.test('every accent comes to tones with AA contrast in both themes', async (t) => {
  for (const accent of accents) {
    const themes = accentTones(colour(accent))
    for (const theme of ['light', 'dark'] as const) {
      const { accent: fill, hover, onAccent, ink } = themes[theme]
      for (const surface of [fill, hover]) {
        const found = contrast(colour(onAccent), colour(surface))
        t.ok(found >= 4.5, `${accent} ${theme}: ${onAccent} on ${surface} has ${found}`)
      }
      for (const ground of grounds[theme]) {
        const found = contrast(colour(ink), colour(ground))
        t.ok(found >= 4.5, `${accent} ${theme}: ${ink} on ${ground} has ${found}`)
      }
      t.not(hover, fill, `${accent} ${theme}: pointing shows`)
    }
  }
})

t.test('on light pages a button has the very colour the operator named', async (t) => {
  for (const accent of accents) t.equal(accentTones(colour(accent)).light.accent, accent)
})

t.test('the grounds are those of the stylesheet', async (t) => {
  const style = readFileSync(new URL('../../views/style.css', import.meta.url), 'utf8')
  const [light = '', dark = ''] = style.split('@media screen and (prefers-color-scheme: dark)')
  for (const [theme, text] of [
    ['light', light],
    ['dark', dark],
  ] as const)
    for (const [index, name] of ['card', 'page', 'sunken'].entries()) {
      const [, value = ''] = new RegExp(`--${name}: (#[0-9a-f]+);`).exec(text) ?? []
      t.equal(value.replace(/^#(.)(.)(.)$/, '#$1$1$2$2$3$3'), grounds[theme][index], `${name} ${theme}`)
    }
})

t.test('an accent that no page can show is refused in a sentence with one that can', async (t) => {
  for (const [accent, fault] of [
    [
      '#ffffff',
      '#ffffff can hardly be told from the white of the pages; choose a stronger colour, such as #707070',
    ],
    [
      '#fafad2',
      '#fafad2 can hardly be told from the white of the pages; choose a stronger colour, such as #72714e',
    ],
    ['red', 'must be # and six hexadecimal digits in quotes, such as "#2c52b3", not "red"'],
    ['#abc', 'must be # and six hexadecimal digits in quotes, such as "#2c52b3", not "#abc"'],
    ['#2c52b3;', 'must be # and six hexadecimal digits in quotes, such as "#2c52b3", not "#2c52b3;"'],
  ] as const)
    t.equal(accentFault(accent), fault)
  for (const accent of accents) t.equal(accentFault(accent), undefined, accent)
})

t.test('the stylesheet of an accent says every token of both themes and nothing else', async (t) => {
  t.equal(
    accentSheet(colour('#c8102e')),
    ':root{--accent:#c8102e;--accent-hover:#a70022;--on-accent:#ffffff;--accent-ink:#c8102e}' +
      '@media screen and (prefers-color-scheme:dark){:root{--accent:#f2908d;--accent-hover:#ffa29f;--on-accent:#000000;--accent-ink:#f2908d}}\n',
  )
})
