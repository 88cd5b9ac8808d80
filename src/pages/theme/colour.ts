/** An sRGB colour as three numbers from 0 to 1. */
export type Colour = readonly [red: number, green: number, blue: number]

/** The colour that `#rrggbb` names; undefined for any other text. */
export function parseColour(text: string): Colour | undefined {
  const [, red, green, blue] = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text) ?? []
  if (red === undefined || green === undefined || blue === undefined) return undefined
  return [Number.parseInt(red, 16) / 255, Number.parseInt(green, 16) / 255, Number.parseInt(blue, 16) / 255]
}

/** A colour as `#rrggbb`. */
export function formatColour(colour: Colour): string {
  return `#${colour.map((part) => toByte(part).toString(16).padStart(2, '0')).join('')}`
}

/** The contrast of two colours, from 1 to 21, WCAG 2.2 §1.4.3. */
export function contrast(one: Colour, other: Colour): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

/** How light a colour looks in OKLab, from 0 to 1. */
export function lightness(colour: Colour): number {
  return toOklab(colour)[0]
}

/** How different two colours look: their distance in OKLab, 1 from black to white. */
export function distance(one: Colour, other: Colour): number {
  const [from, to] = [toOklab(one), toOklab(other)]
  return Math.hypot(from[0] - to[0], from[1] - to[1], from[2] - to[2])
}

/** The same hue at this OKLab lightness, with as much of its chroma as screens can show there, and never more than `most`. */
export function atLightness(colour: Colour, light: number, most = 1): Colour {
  const [, a, b] = toOklab(colour)
  const chroma = Math.hypot(a, b)
  let [low, high] = [0, chroma === 0 ? 0 : Math.min(1, most / chroma)]
  const shade = (share: number) => toRgb([light, a * share, b * share])
  if (isShown(shade(high))) return rounded(shade(high))
  for (let step = 0; step < 16; step += 1) {
    const middle = (low + high) / 2
    if (isShown(shade(middle))) low = middle
    else high = middle
  }
  return rounded(shade(low))
}

function luminance(colour: Colour): number {
  const [red, green, blue] = linear(colour)
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function linear([red, green, blue]: Colour): Colour {
  const bend = (part: number) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
  return [bend(red), bend(green), bend(blue)]
}

/** Björn Ottosson's OKLab: lightness, green to red, blue to yellow. */
function toOklab(colour: Colour): Colour {
  const [red, green, blue] = linear(colour)
  const l = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
  const m = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
  const s = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ]
}

function toRgb([lightness, a, b]: Colour): Colour {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3
  const bend = (part: number) => (part <= 0.0031308 ? part * 12.92 : 1.055 * part ** (1 / 2.4) - 0.055)
  return [
    bend(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    bend(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    bend(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ]
}

/** Whether a screen can show it, but for a rounding. */
function isShown(colour: Colour): boolean {
  return colour.every((part) => part > -0.002 && part < 1.002)
}

/** What eight bits a part make of it: contrasts are promised for what is sent. */
function rounded([red, green, blue]: Colour): Colour {
  return [toByte(red) / 255, toByte(green) / 255, toByte(blue) / 255]
}

function toByte(part: number): number {
  return Math.round(Math.min(1, Math.max(0, part)) * 255)
}
