/** The global under which every copy of the OpenTelemetry API registers its SDK. */
const registry = Symbol.for('opentelemetry.js.api.1')

/** Whether this process has an OpenTelemetry SDK; checks without loading any of it. */
export function isTraced(): boolean {
  const registered: unknown = Reflect.get(globalThis, registry)
  return typeof registered === 'object' && registered !== null && 'trace' in registered
}
