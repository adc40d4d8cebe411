-- A clock that stepped back must not lengthen anything: whatever ends later than its own length from now is cut.
-- Looks at everything, but only then. Afterwards marks that are over are forgotten, and the audit, as at the start of
-- every call.
if now < r.seen then
  f.all()
  for slot = 1, r.n do
    local h = f.hold(slot)
    if h.till > now + h.length then
      h.till = now + h.length
      f.save(h)
    end
  end
  f.survey()
  local boxes = {}
  for _, field in ipairs(plain and {} or redis.call('HKEYS', key)) do
    if string.sub(field, 1, 1) == 'a' then
      boxes[#boxes + 1] = field
    end
  end
  f.fetch(boxes)
  r.lively = 0
  for _, field in ipairs(boxes) do
    local till, length, entries = read('>I8I8I4', f.get(field))
    till = math.min(till, now + length)
    f.set(field, write('>I8I8I4', till, length, entries))
    r.lively = math.max(r.lively, till)
  end
  -- Marks that were over before the step stay over.
  local kept = {}
  for at = r.first, r.final do
    local id = f.get(name('m%d', at))
    f.set(name('m%d', at), false)
    if read('>I8', f.get('d' .. id)) < r.seen then
      f.set('d' .. id, false)
    else
      kept[#kept + 1] = id
      f.set(name('m%d', #kept), id)
    end
  end
  r.first, r.final, r.stale = 1, #kept, 0
  r.latest = #kept > 0 and r.latest or 0
  if r.audit > 0 then
    r.audit = math.min(r.audit, now + read('>I8', f.get('v')))
  end
end
if r.first <= r.final and r.stale < now then
  f.forget()
end
if r.audit > 0 and r.audit <= now then
  f.set('v', false)
  r.audit = 0
end
