'use strict';
// Draws the flame graph of the profile in #data. Names are never used as HTML.
(() => {
  const element = (id) => document.getElementById(id);
  const {rate, kinds, frames, nodes: flat} = JSON.parse(element('data').textContent);
  const canvas = element('graph');
  if (!canvas) return; // no samples

  const HEIGHT = 20; // of a bar, in CSS pixels
  const LEAST = 0.4; // narrower bars are not drawn

  // nodes[0] is the root. A node stands before its children, which fill it from the left.
  const nodes = [];
  const path = [];
  for (let i = 0; i < flat.length; i += 4) {
    const [frame, depth, total, self] = flat.slice(i, i + 4);
    path.length = depth;
    const parent = depth ? path[depth - 1] : null;
    const node = {frame, depth, total, self, parent, children: [], start: 0, used: 0, found: false};
    if (parent) {
      node.start = parent.start + parent.used;
      parent.used += total;
      parent.children.push(node);
    }
    path[depth] = node;
    nodes.push(node);
  }
  const root = nodes[0];
  let zoomed = root;
  let current = root;
  let hovered = null;
  let needle = '';
  let bars = []; // what is drawn: {node, x, y, width}

  const count = new Intl.NumberFormat('en');
  const percent = (part, whole) => (100 * part / whole).toFixed(2) + ' %';
  const nameOf = (node) => frames[node.frame][0];
  const kindOf = (node) => frames[node.frame][2];
  const label = (node) => {
    const mark = node === root ? '' : kinds[kindOf(node)][1];
    return mark ? mark + ' ' + nameOf(node) : nameOf(node);
  };
  const facts = (node) => {
    const [, module, kind] = frames[node.frame];
    const parts = [];
    if (node !== root) parts.push(kinds[kind][0] + (module ? ' (' + module + ')' : ''));
    parts.push(count.format(node.total) + ' samples', (node.total / rate).toFixed(2) + ' s of CPU time',
      percent(node.total, root.total) + ' of all');
    if (node.parent && node.parent !== root) parts.push(percent(node.total, node.parent.total) + ' of its caller');
    if (node.self > 0 && node.self < node.total) parts.push(percent(node.self, root.total) + ' in itself');
    return parts.join(', ');
  };

  // A hue for each kind; shades by name, so that neighbours differ.
  const HUES = [[0, 0], [40, 85], [210, 75], [130, 50], [330, 60]];
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const colour = (frame) => {
    const [name, , kind] = frames[frame];
    let hash = 7;
    for (let i = 0; i < name.length; ++i) hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
    const [hue, saturation] = HUES[kind];
    const shift = hash % 24 - 12;
    const light = dark.matches ? 22 + hash % 12 : 74 + hash % 14;
    return `hsl(${hue + shift} ${dark.matches ? saturation * 0.6 : saturation}% ${light}%)`;
  };
  const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const inZoom = (node) => node.start < zoomed.start + zoomed.total && node.start + node.total > zoomed.start;
  const isAncestor = (node, of) => node.depth <= of.depth && node.start <= of.start
    && node.start + node.total >= of.start + of.total;

  const draw = () => {
    const width = canvas.clientWidth;
    const scale = width / zoomed.total;
    bars = [];
    let rows = 1;
    const left = [root];
    while (left.length) {
      const node = left.pop();
      const x = Math.max((node.start - zoomed.start) * scale, 0);
      const end = Math.min((node.start + node.total - zoomed.start) * scale, width);
      if (!inZoom(node) || (end - x < LEAST && node !== current)) continue;
      rows = Math.max(rows, node.depth + 1);
      bars.push({node, x, y: node.depth * HEIGHT, width: end - x});
      for (const child of node.children) left.push(child);
    }
    const ratio = Math.min(devicePixelRatio || 1, 2);
    canvas.style.height = rows * HEIGHT + 2 + 'px';
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round((rows * HEIGHT + 2) * ratio);
    const context = canvas.getContext('2d');
    context.scale(ratio, ratio);
    context.textBaseline = 'middle';
    const text = theme('--bar-text');
    const page = theme('--page');
    const foundColour = theme('--found');
    const fonts = ['12px system-ui, sans-serif', 'bold 12px system-ui, sans-serif'];
    context.font = fonts[0];
    const letter = context.measureText('n').width;
    for (const {node, x, y, width: wide} of bars) {
      context.globalAlpha = needle && !node.found || isAncestor(node, zoomed) && node !== zoomed ? 0.55 : 1;
      context.fillStyle = colour(node.frame);
      context.fillRect(x, y, Math.max(wide - 0.5, 0.3), HEIGHT - 1);
      context.globalAlpha = 1;
      if (needle && node.found) { // marked by a bar on top as well, not by colour alone
        context.fillStyle = foundColour;
        context.fillRect(x, y, Math.max(wide - 0.5, 1), 4);
      }
      if (wide > 3 * letter) {
        const room = Math.floor((wide - 6) / letter * 1.6);
        context.save();
        context.beginPath();
        context.rect(x, y, wide - 2, HEIGHT - 1);
        context.clip();
        context.font = fonts[needle && node.found ? 1 : 0];
        context.fillStyle = text;
        context.fillText(label(node).slice(0, room), x + 3, y + HEIGHT / 2);
        context.restore();
      }
    }
    const chosen = bars.find((bar) => bar.node === current);
    if (chosen) {
      const wide = Math.max(chosen.width - 2, 2);
      context.lineWidth = 4;
      context.strokeStyle = page;
      context.strokeRect(chosen.x + 1, chosen.y + 1, wide, HEIGHT - 2);
      context.lineWidth = 2;
      context.strokeStyle = text;
      context.strokeRect(chosen.x + 1, chosen.y + 1, wide, HEIGHT - 2);
    }
    element('out').disabled = element('reset').disabled = zoomed === root;
  };

  const choose = (node) => {
    current = node;
    element('current').textContent = nameOf(node) + ': ' + facts(node);
    draw();
  };
  const zoom = (node) => {
    zoomed = node;
    choose(node);
  };

  const barAt = (event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return bars.find((bar) => x >= bar.x && x < bar.x + bar.width && y >= bar.y && y < bar.y + HEIGHT);
  };
  const tip = element('tip');
  const showTip = (event) => {
    const bar = barAt(event);
    if (!bar) {
      hovered = null;
      tip.hidden = true;
      return;
    }
    if (bar.node !== hovered) {
      hovered = bar.node;
      const name = document.createElement('strong');
      name.textContent = nameOf(hovered);
      tip.replaceChildren(name, facts(hovered));
      tip.hidden = false;
    }
    const right = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(0, Math.min(event.pageX + 12, right)) + 'px';
    tip.style.top = event.pageY + 18 + 'px';
  };
  canvas.addEventListener('mousemove', showTip);
  canvas.addEventListener('mouseleave', () => { hovered = null; tip.hidden = true; });
  canvas.addEventListener('click', (event) => {
    const bar = barAt(event);
    if (bar) zoom(bar.node);
  });

  const widest = (node) => node.children.reduce((best, child) => !best || child.total > best.total ? child : best, null);
  const sibling = (node, step) => {
    const all = node.parent ? node.parent.children : [];
    return all[all.indexOf(node) + step];
  };
  const zoomOut = () => zoom(zoomed.parent || root);
  const KEYS = {
    ArrowUp: () => choose(current.parent || current),
    ArrowDown: () => choose(widest(current) || current),
    ArrowLeft: () => choose(sibling(current, -1) || current),
    ArrowRight: () => choose(sibling(current, 1) || current),
    Enter: () => zoom(current),
    ' ': () => zoom(current),
    Backspace: zoomOut,
    Escape: () => zoom(root),
    Home: () => zoom(root),
  };
  canvas.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    KEYS[event.key]();
    if (!inZoom(current) || !bars.some((bar) => bar.node === current)) zoom(current.parent || root);
  });

  const input = element('search');
  const search = () => {
    needle = input.value.trim().toLowerCase();
    const hits = frames.map(([name, module]) => needle !== ''
      && (name.toLowerCase().includes(needle) || module.toLowerCase().includes(needle)));
    hits[root.frame] = false;
    let share = 0;
    const functions = new Set();
    for (const node of nodes) {
      node.found = hits[node.frame];
      // A match inside a match is counted once.
      node.inFound = node.found || Boolean(node.parent && node.parent.inFound);
      if (!node.found) continue;
      functions.add(node.frame);
      if (!node.parent.inFound) share += node.total;
    }
    element('found').textContent = needle === '' ? ''
      : functions.size === 0 ? 'No function matches.'
        : `${functions.size} ${functions.size === 1 ? 'function matches' : 'functions match'}: `
          + percent(share, root.total) + ' of all';
    draw();
  };
  input.addEventListener('input', search);
  element('tools').addEventListener('submit', (event) => event.preventDefault());
  element('out').addEventListener('click', zoomOut);
  element('reset').addEventListener('click', () => zoom(root));
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target === input || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    input.focus();
  });

  // A function of the table can be looked for in the picture.
  for (const cell of document.querySelectorAll('tbody th')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = cell.textContent;
    button.title = 'Search in the picture';
    button.addEventListener('click', () => {
      input.value = button.textContent;
      search();
      element('picture').scrollIntoView();
    });
    cell.replaceChildren(button);
  }

  const legend = () => {
    const used = new Set(nodes.slice(1).map((node) => kindOf(node)));
    element('legend').replaceChildren(...[...used].sort().map((kind) => {
      const item = document.createElement('li');
      const mark = document.createElement('span');
      mark.textContent = kinds[kind][1] || '\u00a0';
      mark.style.background = colour(nodes.find((node) => node !== root && kindOf(node) === kind).frame);
      item.append(mark, kinds[kind][0]);
      return item;
    }));
  };

  element('picture').hidden = false;
  legend();
  choose(root);
  new ResizeObserver(draw).observe(element('picture'));
  dark.addEventListener('change', () => { legend(); draw(); });
})();
