-- A clock that stepped back must not lengthen anything: whatever ends later than its own length from now is cut.
-- Looks at everything, but only then.
local function cut_holds()
  all()
  for slot = 1, n do
    local h = hold(slot)
    if h.till > now + h.length then
      h.till = now + h.length
      save(h)
    end
  end
  survey()
end

local function cut_lives()
  local boxes = {}
  for _, field in ipairs(known and redis.call('HKEYS', key) or {}) do
    if string.byte(field) == 97 then
      boxes[#boxes + 1] = field
    end
  end
  fetch(boxes)
  lively = 0
  for _, field in ipairs(boxes) do
    local till, length, entries = read('>I8I8I4', get(field))
    till = math.min(till, now + length)
    set(field, write('>I8I8I4', till, length, entries))
    lively = math.max(lively, till)
  end
end

-- Marks that were over before the step stay over.
local function cut_marks()
  local kept, from, to = {}, first, final
  for at = from, to do
    local id = get(number(at))
    if read('>I8', get('d' .. id)) < seen then
      drop(at, id)
    else
      kept[#kept + 1] = id
      set(number(at), false)
    end
  end
  first, final, stale = 1, 0, 0
  for _, id in ipairs(kept) do
    final = final + 1
    set(number(final), id)
  end
  if final == 0 then
    latest = 0
  end
end

if now < seen then
  cut_holds()
  cut_lives()
  cut_marks()
end
seen = now
forget()
