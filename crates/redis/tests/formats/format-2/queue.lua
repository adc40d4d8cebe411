-- Who waits: places are running numbers, and a waiter's neighbours are the places beside its own unless a link says
-- otherwise. So joining and leaving at the ends costs nothing, and leaving in between two links.
--
-- keeps    head, tail (places, while waiting > 0), place (the next), waiting, fairs; lively, not earlier than any
--          live-until, and 0 without any
local WAIT = '>BI4BI8I8I8I8I8'

function f.parse(raw, from)
  local w, rest = {}, 0
  w.mode, w.count, w.fair, w.lease, w.window, w.not_after, w.ballot, w.since, rest = read(WAIT, raw, from)
  w.card, w.of = string.sub(raw, rest), r.cap
  w.id, w.box = string.sub(w.card, 1, 24), string.sub(w.card, 25, 40)
  return w
end

function f.form(c)
  return write(WAIT, c.mode, c.count, c.fair, c.lease, c.window, c.not_after, c.ballot, us) .. c.card
end

function f.waiter(at)
  local w = r.waiters[at]
  if not w then
    w = f.parse(f.get(name('w%d', at)), 1)
    r.waiters[at] = w
  end
  return w
end

function f.links(at)
  local raw = f.get(name('l%d', at))
  if raw then
    return read('>I8I8', raw)
  end
  return at - 1, at + 1
end

function f.link(at, before, behind)
  f.set(name('l%d', at), write('>I8I8', before, behind))
end

-- Until when an inbox is alive, for what length, and how many entries it has.
function f.life(box)
  local raw = f.get('a' .. box)
  if raw then
    return read('>I8I8I4', raw)
  end
  return nil, 0, 0
end

-- Counts one entry more, or none, and lengthens the life of an inbox that has entries; never shortens it.
function f.refresh(box, length, more)
  local till, old, entries = f.life(box)
  entries = entries + more
  if entries == 0 then
    return
  elseif till and till >= now + length then
    length = old
  else
    till = now + length
    r.lively = math.max(r.lively, till)
  end
  f.set('a' .. box, write('>I8I8I4', till, length, entries))
end

function f.delist(box)
  local till, length, entries = f.life(box)
  f.set('a' .. box, entries > 1 and write('>I8I8I4', till, length, entries - 1))
  if not f.somebody_waits() then
    r.lively = 0
  end
end

function f.dead(box)
  local till = f.life(box)
  return not till or till <= now
end

function f.push(c)
  local place = r.place
  if r.waiting == 0 then
    r.head = place
  elseif r.tail ~= place - 1 then
    f.link(r.tail, f.links(r.tail), place)
    f.link(place, r.tail, place + 1)
  end
  f.refresh(c.box, c.alive, 1)
  f.set(name('w%d', place), f.form(c))
  f.set('i' .. c.id, write('>BI8', 2, place))
  r.tail, r.place, r.waiting, r.fairs = place, place + 1, r.waiting + 1, r.fairs + c.fair
end

function f.leave(at, w)
  local before, behind = f.links(at)
  if at == r.head then
    r.head = behind
  elseif at == r.tail then
    r.tail = before
  else
    f.link(before, f.links(before), behind)
    f.link(behind, before, select(2, f.links(behind)))
  end
  if f.get(name('l%d', at)) then
    f.set(name('l%d', at), false)
  end
  f.set(name('w%d', at), false)
  f.set('i' .. w.id, false)
  r.waiting, r.fairs = r.waiting - 1, r.fairs - w.fair
  f.delist(w.box)
end

function f.upgrade()
  if r.upgrading == 1 and not r.pending then
    local raw = f.get('u')
    r.pending = f.parse(raw, 25)
    r.pending.from = string.sub(raw, 1, 24)
  end
  return r.pending
end

function f.take_upgrade()
  local taken = f.upgrade()
  r.upgrading, r.pending = 0, nil
  f.set('u', false)
  f.delist(taken.box)
  return taken
end
