-- How claims enter, and the words of a verdict:
--   1 stamp remaining waiters fair   granted
--   2 last ahead [remaining card]    queued, with the holder that ends last
--   3 [remaining card]               busy, with the holder or the next in line
--   4 code …                         refused: 1 done, 2 late, 3 lease too long, 4 wrong kind (capacity there is),
--                                    5 queue full, 6 not holder, 7 revoked (reason), 8 upgrade pending,
--                                    9 overtaken (last stamp); behind 6 the audit, if there is one
-- A card in a reply begins behind the secret id.
function f.granted(h)
  return {1, h.stamp, f.remaining(h), r.waiting + r.upgrading, r.fairs > 0 and 1 or 0}
end

function f.queued(ahead)
  local reply = {2, r.last, ahead}
  f.blocker(reply)
  return reply
end

-- Adds the audit (see audit.lua) to the answer to one who does not hold, if there is one. Its client finds there whether
-- it was revoked, by its public id: the script knows the secret one only, and that is not kept for longer than it serves.
function f.ended(reply)
  reply[#reply + 1] = r.audit > 0 and f.get('v') or nil
  return reply
end

-- How an id that holds or waits stands, or nothing; the second value says that it waits.
function f.standing(id)
  local kind, at = f.find(id)
  if kind == 1 then
    return f.granted(f.hold(at))
  elseif r.upgrading == 1 and f.upgrade().id == id then
    return f.queued(0), true
  elseif kind == 2 then
    return f.queued(math.min(at - r.head, r.waiting - 1) + r.upgrading), true
  end
end
