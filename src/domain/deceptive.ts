// Control characters, lone surrogates, line separators, and everything that is invisible or turns the direction of
// what follows: a name with these can pass for another one on the consent page.
const deceptive =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u115f\u1160\u2065\u3164\uffa0\ufff0-\ufff8\u{e0000}-\u{e00ff}\u{e01f0}-\u{e0fff}]|\u034f/u

/** Scripts whose characters are joined: a ZWNJ ends the joining, as in Persian. */
const cursive = ['Arabic', 'Syriac', 'Mongolian', 'Nko', 'Adlam']

/** The virama of each script where a ZWJ or ZWNJ next to it chooses the form of a conjunct. */
const viramas = {
  Devanagari: '\u094d',
  Bengali: '\u09cd',
  Gurmukhi: '\u0a4d',
  Gujarati: '\u0acd',
  Oriya: '\u0b4d',
  Tamil: '\u0bcd',
  Telugu: '\u0c4d',
  Kannada: '\u0ccd',
  Malayalam: '\u0d4d',
  Sinhala: '\u0dca',
}

// Symbols of text, such as those of trade marks, are no part of an emoji that is joined.
const emoji = String.raw`[\p{Extended_Pictographic}&&[\u2190-\u{10ffff}]]`
const letterOf = (script: string) => String.raw`[\p{L}&&\p{Script=${script}}]`

/**
 * Matches one joiner that writing needs: RFC 5892 appendix A.1 and A.2, and UTS #51 for emoji. Compiled for the first
 * name that has one.
 */
let needed: RegExp | undefined
const compileNeeded = () =>
  new RegExp(
    [
      String.raw`(?<=${emoji}[\u{1f3fb}-\u{1f3ff}]?\ufe0f?)\u200d(?=${emoji})`,
      ...cursive.map((script) => String.raw`(?<=${letterOf(script)}\p{M}{0,4})\u200c(?=${letterOf(script)})`),
      ...Object.entries(viramas).flatMap(([script, virama]) => [
        String.raw`(?<=${letterOf(script)}\p{M}{0,4}${virama})[\u200c\u200d](?=${letterOf(script)})`,
        // Ra with its full form before a virama, as Bengali and Kannada write it.
        String.raw`(?<=${letterOf(script)})\u200d(?=${virama}${letterOf(script)})`,
      ]),
    ].join('|'),
    'gv',
  )

/**
 * Whether a name has a character that could disguise it or change the direction of the text around it. ZWJ and ZWNJ are
 * accepted one at a time where a script or an emoji needs them: elsewhere nothing would show them.
 */
export function isDeceptive(text: string): boolean {
  if (!deceptive.test(text)) return false
  needed ??= compileNeeded()
  return deceptive.test(text.replaceAll(needed, ''))
}
