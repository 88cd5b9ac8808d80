/** Where the OpenTelemetry API, in whatever copy, keeps what an SDK has registered. */
const registry = Symbol.for('opentelemetry.js.api.1')

/** Whether this process has an OpenTelemetry SDK; to find out, nothing of it is loaded. */
export function isTraced(): boolean {
  const registered: unknown = Reflect.get(globalThis, registry)
  return typeof registered === 'object' && registered !== null && 'trace' in registered
}
