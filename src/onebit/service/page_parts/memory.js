// What a tab remembers when it is loaded again; other tabs have their own.
export function remember(key, value) {
  try {
    sessionStorage.setItem(`onebit.${key}`, JSON.stringify(value));
  } catch {
    // Without storage a reload starts anew.
  }
}

export function recall(key) {
  try {
    return JSON.parse(sessionStorage.getItem(`onebit.${key}`));
  } catch {
    return null;
  }
}
