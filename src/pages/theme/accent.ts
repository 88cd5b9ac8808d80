import {
  atLightness,
  type Colour,
  contrast,
  distance,
  formatColour,
  lightness,
  parseColour,
} from './colour.ts'

/** The accent in one theme, each a `#rrggbb`. */
export interface AccentTones {
  /** What a button is filled with. */
  readonly accent: string
  /** Under the pointer. */
  readonly hover: string
  /** What is written on it. */
  readonly onAccent: string
  /** Links, ticks, the edge of a button and the ring around what has the focus. */
  readonly ink: string
}

/** What views/style.css lays the accent on: --card, --page and --sunken of each theme. */
export const grounds = {
  light: ['#ffffff', '#f3f4f7', '#f7f8fa'],
  dark: ['#1a1e25', '#101318', '#222731'],
} as const

const white: Colour = [1, 1, 1]
const black: Colour = [0, 0, 0]
/** WCAG 2.2 §1.4.3. */
const textContrast = 4.5
/** In OKLab, from the white of the card: a nearer button looks unselected. */
const leastDistance = 0.12
/** What a dark theme wants of a colour that is read: clear of the limit, and not glaring. */
const darkContrast = 6.5
const darkChroma = 0.12

/**
 * The tones of an accent in both themes, with AA contrast everywhere: the button has the operator's own colour in the
 * light theme, with an edge and links as dark as they must be; the dark theme has a lighter shade of the hue.
 */
export function accentTones(accent: Colour): { readonly light: AccentTones; readonly dark: AccentTones } {
  const lifted = shift(accent, grounds.dark, darkContrast, darkChroma)
  return {
    light: tones(accent, shift(accent, grounds.light, textContrast)),
    dark: tones(lifted, lifted),
  }
}

/** What is wrong with an accent, as the end of a sentence; undefined for one that can be used. */
export function accentFault(text: string): string | undefined {
  const accent = parseColour(text)
  if (accent === undefined)
    return `must be # and six hexadecimal digits in quotes, such as "#2c52b3", not ${JSON.stringify(text).slice(0, 60)}`
  if (distance(accent, white) >= leastDistance) return undefined
  const readable = formatColour(shift(accent, grounds.light, textContrast))
  return `${text} can hardly be told from the white of the pages; choose a stronger colour, such as ${readable}`
}

/** The stylesheet that gives every page this accent. */
export function accentSheet(accent: Colour): string {
  const { light, dark } = accentTones(accent)
  return `:root{${properties(light)}}@media screen and (prefers-color-scheme:dark){:root{${properties(dark)}}}\n`
}

/** The shipped icon in this accent: a shade between, for tabs that are light or dark. */
export function accentIcon(icon: string, accent: Colour): string {
  return icon.replaceAll('#4f72cf', formatColour(atLightness(accent, 0.57)))
}

function properties({ accent, hover, onAccent, ink }: AccentTones): string {
  return `--accent:${accent};--accent-hover:${hover};--on-accent:${onAccent};--accent-ink:${ink}`
}

function tones(fill: Colour, ink: Colour): AccentTones {
  // One of them always has 4.5: the worst grey is as far from both.
  const onAccent = contrast(fill, white) >= textContrast ? white : black
  // Away from what is written on it, so that pointing never makes it harder to read; black has nowhere to go.
  const away = onAccent === black ? 0.05 : -0.07
  const step = lightness(fill) < 0.15 ? 0.2 : away
  const hover = atLightness(fill, Math.min(1, lightness(fill) + step))
  return {
    accent: formatColour(fill),
    hover: formatColour(hover),
    onAccent: formatColour(onAccent),
    ink: formatColour(ink),
  }
}

/** The shade nearest to a colour that has this contrast with every one of the grounds: darker on light ones, lighter on dark. */
function shift(colour: Colour, on: readonly string[], wanted: number, most?: number): Colour {
  const step = on === grounds.light ? -0.005 : 0.005
  let light = lightness(colour)
  let shade = most === undefined ? colour : atLightness(colour, light, most)
  // Black and white have 16 and more: the end is never reached.
  while (least(shade, on) < wanted) {
    light += step
    shade = atLightness(colour, light, most)
  }
  return shade
}

function least(colour: Colour, on: readonly string[]): number {
  return Math.min(...on.map((ground) => contrast(colour, parseColour(ground) ?? white)))
}
