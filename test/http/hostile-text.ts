/** Text that ends an attribute, starts an element, turns the writing direction and never breaks. */
export const hostileText = `"'><script>alert(1)</script><img src=//evil.test onerror=alert(1)>&lt;\u202E‮moc.elgoog 💥Z̸̛͇̫̮͒̈́͌͐a̶̢̛͙̫͗l̷̰͐${'W'.repeat(420)}`
