-- The record as people may see it, without secrets, with as many waiters as wanted.
--
-- returns  nothing (an empty list), or: last, in use, capacity, holders, waiters, revocations (see audit.lua),
--          how many wait, shown or not
--          holder: mode count stamp since remaining card [reason]; waiter: mode count fair since card
function f.holders_view()
  local list = {}
  f.all()
  for slot = 1, r.n do
    local h = f.hold(slot)
    if h.till > now then
      list[#list + 1] = {h.mode, h.count, h.stamp, h.since, f.remaining(h), string.sub(h.card, 25),
        h.revoked == 1 and f.get('r' .. h.id) or nil}
    end
  end
  return list
end

function f.waiters_view(shown)
  local list, at = {}, r.head
  local function add(w)
    list[#list + 1] = {w.mode, w.count, w.fair, w.since, string.sub(w.card, 25)}
  end
  if r.upgrading == 1 then
    add(f.upgrade())
  end
  for _ = 1, math.min(r.waiting, shown - #list) do
    if cache[name('w%d', at)] == nil then
      -- The next places, most of which are likely taken.
      local fields = {}
      for place = at, math.min(at + math.min(shown, 100) - 1, r.tail) do
        fields[#fields + 1] = name('w%d', place)
        fields[#fields + 1] = name('l%d', place)
      end
      f.fetch(fields)
    end
    add(f.waiter(at))
    at = select(2, f.links(at))
  end
  return list
end

function f.view(shown)
  local used = r.n > 0 or f.somebody_waits()
  if r.last == 0 and not used then
    return {}
  end
  return {r.last, used and 1 or 0, r.cap, f.holders_view(), f.waiters_view(shown), f.revocations(),
    r.waiting + r.upgrading}
end
