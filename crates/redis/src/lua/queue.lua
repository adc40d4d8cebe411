-- Who waits: places are running numbers, and a waiter's neighbours are the places beside its own unless a link says
-- otherwise. So joining and leaving at the ends costs nothing, and leaving in between two links.
--
-- keeps    head, tail (places, while waiting > 0), place (the next), waiting, fairs; lively, not earlier than any live-until
local WAIT = '>c24BI4BI8I8I8I8I8'

local function parse(raw)
  local w, rest = {}, 0
  w.id, w.mode, w.count, w.fair, w.lease, w.window, w.not_after, w.ballot, w.since, rest = read(WAIT, raw)
  w.static, w.of = string.sub(raw, rest), cap
  return w
end

local function form(c)
  return write(WAIT, c.id, c.mode, c.count, c.fair, c.lease, c.window, c.not_after, c.ballot, us) .. c.static
end

local function inbox(entry)
  return string.sub(entry.static, 1, 16)
end

local function waiter(at)
  return parse(get(name('w%.0f', at)))
end

local function links(at)
  local raw = get(name('l%.0f', at))
  if raw then
    return read('>I8I8', raw)
  end
  return at - 1, at + 1
end

local function link(at, before, behind)
  set(name('l%.0f', at), write('>I8I8', before, behind))
end

local function life(box)
  local raw = get('a' .. box)
  if raw then
    return read('>I8I8I4', raw)
  end
  return nil, nil, 0
end

-- Lengthens the life of an inbox that has entries here; never shortens it.
local function refresh(box, length)
  local till, old, entries = life(box)
  if till and till < now + length then
    set('a' .. box, write('>I8I8I4', now + length, length, entries))
    lively = math.max(lively, now + length)
  end
end

local function enlist(box, length)
  local till, old, entries = life(box)
  set('a' .. box, write('>I8I8I4', till or now, old or 0, entries + 1))
  refresh(box, length)
end

local function delist(box)
  local till, length, entries = life(box)
  set('a' .. box, entries > 1 and write('>I8I8I4', till, length, entries - 1))
end

local function dead(box)
  local till = life(box)
  return not till or till <= now
end

local function push(c)
  if waiting == 0 then
    head = place
  elseif tail ~= place - 1 then
    link(tail, links(tail), place)
    link(place, tail, place + 1)
  end
  enlist(inbox(c), c.alive)
  set(name('w%.0f', place), form(c))
  set('i' .. c.id, write('>BI8', 2, place))
  tail, place, waiting, fairs = place, place + 1, waiting + 1, fairs + c.fair
end

local function leave(at, w)
  local before, behind = links(at)
  if at == head then
    head = behind
  elseif at == tail then
    tail = before
  else
    local far = links(before)
    link(before, far, behind)
    local _, next = links(behind)
    link(behind, before, next)
  end
  if get(name('l%.0f', at)) then
    set(name('l%.0f', at), false)
  end
  set(name('w%.0f', at), false)
  set('i' .. w.id, false)
  waiting, fairs = waiting - 1, fairs - w.fair
  delist(inbox(w))
end

local pending

local function upgrade()
  if upgrading == 1 and not pending then
    local raw = get('u')
    pending = parse(string.sub(raw, 25))
    pending.from = string.sub(raw, 1, 24)
  end
  return pending
end

local function take_upgrade()
  local taken = upgrade()
  upgrading, pending = 0, nil
  set('u', false)
  delist(inbox(taken))
  return taken
end

local function somebody_waits()
  return waiting > 0 or upgrading == 1
end
