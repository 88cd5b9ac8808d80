/** What users type differs by keyboard: telephones add spaces, and each script has digits and dashes of its own. */

/** Longer than any code of this server, however it is typed. */
const longestTyped = 100

/** Spaces, dashes, what looks like them on a keyboard of Japanese, and marks that a copied text brings along. */
const separators = /[\s\p{Z}\p{Dash}\p{Cf}ー_.]/gu

/**
 * Reads a code that a user typed: NFKC, the digits of every script as ASCII, and no separators. Empty for text that is
 * too long to be a code.
 */
export function readTypedCode(text: string): string {
  if (text.length > longestTyped) return ''
  return westernDigits(text.normalize('NFKC')).replaceAll(separators, '')
}

/** Replaces the decimal digits of every script by those of ASCII. */
export function westernDigits(text: string): string {
  return text.replaceAll(/[^\P{Nd}0-9]/gu, (digit) => String(digitValue(digit)))
}

/** Unicode §4.6: the ten digits of a script follow each other, and a run of digits begins with a zero. */
function digitValue(digit: string): number {
  const end = digit.codePointAt(0) ?? 0
  let start = end
  while (/\p{Nd}/u.test(String.fromCodePoint(start - 1))) start -= 1
  return (end - start) % 10
}
