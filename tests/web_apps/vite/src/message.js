export const message = 'Hello from a module'
