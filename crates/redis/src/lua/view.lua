-- The record as people may see it, without secrets. Walks the whole queue.
--
-- returns  nothing (an empty list), or: last, in use, capacity, holders, waiters, and the last revocation if there is one
--          holder: mode count stamp since remaining static [reason]; waiter: mode count fair since static
local function holders_view()
  local list = {}
  all()
  for slot = 1, n do
    local h = hold(slot)
    if h.till > now then
      list[#list + 1] = {h.mode, h.count, h.stamp, h.since, remaining(h), h.static,
        h.revoked == 1 and get('r' .. h.id) or nil}
    end
  end
  return list
end

local function waiters_view()
  local list, at = {}, head
  local function add(w)
    list[#list + 1] = {w.mode, w.count, w.fair, w.since, w.static}
  end
  if upgrading == 1 then
    add(upgrade())
  end
  for _ = 1, waiting do
    fetch({name('w%.0f', at), name('l%.0f', at)})
    add(waiter(at))
    at = select(2, links(at))
  end
  return list
end

local function view()
  local used = n > 0 or somebody_waits()
  if last == 0 and not used then
    return {}
  end
  return {last, used and 1 or 0, cap, holders_view(), waiters_view(), get('v') or nil}
end
