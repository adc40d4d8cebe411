-- The fast path of a release: the only hold, exclusive or shared, with nobody waiting and nothing to remember.
--
-- s        the record, a plain string
-- id       the holder id to end; then the store's limits and the release's numbers, in the order of release_head.lua
-- returns  the record as it is to be, and when its key is to end. Nothing where it does not fit
--
-- Releases of one moment have all but their stamps in common.
local rest, rest_end
local function release(s, id, retention, _, named, _, again)
  if named ~= 0 or again ~= 0 or string.find(s, id, 84, true) ~= 84 then
    return
  end
  local last, seen, ends, _, _, _, till = struct.unpack('>I8I8I8I8I4BI8', s)
  if ends <= now or seen > now or till <= now then
    return
  end
  ends = now + retention
  if last > us then
    ends = ends + math.ceil((last - us) / 1000)
  end
  if ends ~= rest_end then
    rest, rest_end = struct.pack('>I8I8I8I4B', now, ends, 0, 0, 0), ends
  end
  return string.sub(s, 1, 8) .. rest, ends
end
