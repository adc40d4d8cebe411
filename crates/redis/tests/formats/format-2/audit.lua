-- The audit: the last revocations, oldest first, in the field v: for how long they are kept, then each behind its size.
--
-- each     stamp, when (wall clock), whether at once, the size of the reason, the reason, the size of the card that
--          follows, that (public id and who held), who asked
-- keeps    audit    the time until which they are kept, 0 without any
--
-- A record with an audit is left to the engine: its summary is of the sort 2, which no fast path takes (join.lua reads no
-- soonest from it, so that it seems to be over).
function f.revocations()
  local list, v, at = {}, r.audit > now and f.get('v') or '', 9
  while at <= #v do
    local size = read('>I4', v, at)
    list[#list + 1] = string.sub(v, at + 4, at + 3 + size)
    at = at + 4 + size
  end
  return list
end
