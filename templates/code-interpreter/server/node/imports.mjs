// Imports in code that is evaluated, where the language has none: both kinds become calls of our own loader.

const STATIC = /^([ \t]*)import\s+(?:([\w$\s{},*]+?)\s*from\s*)?(["'])([^"'\n]+)\3(?:\s*with\s*\{[^}]*\})?[ \t]*;?/gm;
const DYNAMIC = /(?<![.\w$])import(?=\s*\()/g;
const LOADER = 'globalThis.__sandyardImport';

/** The script with its imports made calls. Only what is code counts, not what texts and comments say. */
export function importable(script) {
  if (!script.includes('import')) return script;
  const inert = masked(script);
  const isCode = (place) => inert[place] === script[place];
  const withCalls = script.replace(DYNAMIC, (word, place) => (isCode(place) ? LOADER : word));
  const maskedCalls = withCalls === script ? inert : masked(withCalls);
  return withCalls.replace(STATIC, (text, indent, clause, _quote, name, place) => {
    const start = place + indent.length;
    return maskedCalls[start] === withCalls[start] ? indent + declaration(clause, name) + lines(text) : text;
  });
}

function declaration(clause, name) {
  const loaded = `await ${LOADER}(${JSON.stringify(name.replace(/^npm:/, ''))})`;
  if (!clause) return `${loaded};`;
  const named = clause.match(/\{([^}]*)\}/);
  const [first] = clause.split(/[,{*]/);
  const everything = clause.match(/\*\s*as\s+([\w$]+)/);
  const parts = [];
  if (first.trim()) parts.push(`default: ${first.trim()}`);
  if (named) parts.push(...named[1].split(',').map((each) => each.trim().replace(/\s+as\s+/, ': ')).filter(Boolean));
  const declared = parts.length ? [`{ ${parts.join(', ')} } = ${loaded}`] : [];
  if (everything) declared.push(`${everything[1]} = ${loaded}`);
  return `const ${declared.join(', ')};`;
}

/** As many line ends as the text had, so that places in errors stay right. */
function lines(text) {
  return '\n'.repeat(text.split('\n').length - 1);
}

/** The script with everything inside texts and comments blanked. Code between `${` and `}` is left as it is. */
function masked(script) {
  const out = script.split('');
  const nested = [];
  let place = 0;
  const blank = (end) => {
    for (; place < end && place < out.length; place++) if (out[place] !== '\n') out[place] = '\0';
  };
  const text = (quote) => {
    place++;
    while (place < script.length && script[place] !== quote) {
      if (quote === '`' && script.startsWith('${', place)) {
        nested.push(0);
        place += 2;
        return;
      }
      blank(place + (script[place] === '\\' ? 2 : 1));
    }
    place++;
  };
  while (place < script.length) {
    const here = script[place];
    if (script.startsWith('//', place)) blank(ending(script, '\n', place));
    else if (script.startsWith('/*', place)) blank(ending(script, '*/', place) + 2);
    else if (here === '"' || here === "'" || here === '`') text(here);
    else if (here === '}' && nested.length && nested.at(-1) === 0) {
      nested.pop();
      text('`');
    } else {
      if (nested.length && here === '{') nested[nested.length - 1]++;
      if (nested.length && here === '}') nested[nested.length - 1]--;
      place++;
    }
  }
  return out.join('');
}

function ending(script, mark, from) {
  const found = script.indexOf(mark, from);
  return found < 0 ? script.length : found;
}
