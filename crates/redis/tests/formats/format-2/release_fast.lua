-- The fast path of a release: the only hold, exclusive or shared, with nobody waiting and nothing to remember.
--
-- takes    s, plain, id and the numbers as release_head.lua has them; in a bundle they are a function's arguments
-- gives    record and ends: the record as it is to be, when its key is to end; nothing where it does not fit
--
-- Releases of one moment have all but their stamps in common.
if named == 0 and again == 0 and plain and string.find(s, id, 84, true) == 84 then
  local last, seen, _, _, _, _, till
  last, seen, ends, _, _, _, till = struct.unpack('>I8I8I8I8I4BI8', s)
  if ends > now and seen <= now and till > now then
    ends = now + retention
    if last > us then
      ends = ends + math.ceil((last - us) / 1000)
    end
    if ends ~= rest_end then
      rest, rest_end = struct.pack('>I8I8I8I4B', now, ends, 0, 0, 0), ends
    end
    record = string.sub(s, 1, 8) .. rest
  end
end
