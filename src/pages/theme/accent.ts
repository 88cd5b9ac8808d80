/**
 * Returns what is wrong with an accent, as the end of a sentence; undefined for one that can be used. A button that is
 * nearly white looks unselected.
 */
export function accentFault(text: string): string | undefined {
  if (!/^#[0-9a-f]{6}$/i.test(text))
    return `must be # and six hexadecimal digits in quotes, such as "#2c52b3", not ${JSON.stringify(text).slice(0, 60)}`
  const isNearWhite = /^#(?:d[89a-f]|[ef].){3}$/i.test(text)
  return isNearWhite
    ? `${text} is too close to the white of the pages; choose a stronger colour, such as "#2c52b3"`
    : undefined
}

/**
 * Returns the stylesheet that gives every page this accent; the browser computes the shades. Each pair has AA contrast,
 * WCAG 2.2 §1.4.3, whatever the accent: `y` of xyz-d65 is the luminance that WCAG compares. On light pages a button has
 * the accent itself, with white text up to the luminance .18 and black text from there, and links are as dark as they
 * must be. Under the pointer a button moves away from its text; black gets lighter. Dark pages lift the accent.
 */
export function accentSheet(accent: string): string {
  const whiteIf = (condition: string) =>
    `color(from ${accent} xyz-d65 ${['.9505', '1', '1.089'].map((most) => `clamp(0, ${condition} * 1e9, ${most})`).join(' ')})`
  return `:root {
  --accent: ${accent};
  --accent-hover: color-mix(in oklab, ${accent} 82%, ${whiteIf('(y - .01) * (y - .18)')});
  --on-accent: ${whiteIf('(.18 - y)')};
  --accent-ink: color(from ${accent} xyz-d65 calc(x * .16 / max(y, .16)) min(y, .16) calc(z * .16 / max(y, .16)));
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --accent: oklch(from ${accent} max(l, .75) min(c, .12) h);
    --accent-hover: color-mix(in oklab, var(--accent) 82%, white);
    --on-accent: black;
    --accent-ink: var(--accent);
  }
}
`
}

/** Returns the shipped icon in this accent, at a lightness for light and dark browser tabs. */
export function accentIcon(icon: string, accent: string): string {
  return icon.replaceAll('#4f72cf', `oklch(from ${accent} .57 c h)`)
}
