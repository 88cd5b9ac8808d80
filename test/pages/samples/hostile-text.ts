/** Text that closes an attribute, opens an element, reverses the writing direction and never breaks. */
export const hostileText = `"'><script>alert(1)</script><img src=//evil.test onerror=alert(1)>&lt;\u202E‮moc.elgoog 💥Z̸̛͇̫̮͒̈́͌͐a̶̢̛͙̫͗l̷̰͐${'W'.repeat(420)}`
