// Which public methods of the SDK were called: what nobody called is told at the end, so that nothing is forgotten when the
// SDK grows.

const called = new Set()
const sdkMethods = new Set()

// Watches the methods of a class, or its static ones; `apart` are those that are not the public's.
export function watch(name, holder, apart = []) {
  for (const method of Object.getOwnPropertyNames(holder)) {
    const property = Object.getOwnPropertyDescriptor(holder, method)
    if (method === 'constructor' || apart.includes(method) || typeof property.value !== 'function') continue
    if (method === 'length' || method === 'prototype') continue
    const label = `${name}.${method}`
    sdkMethods.add(label)
    const original = property.value
    holder[method] = function (...args) {
      called.add(label)
      return original.apply(this, args)
    }
  }
}

export function forgotten() {
  return [...sdkMethods].filter((label) => !called.has(label)).sort()
}
