-- The part of Redis's struct library that the scripts use: big-endian, B, I4, I8 and c<length>.
local floor, byte, char, sub, gmatch = math.floor, string.byte, string.char, string.sub, string.gmatch
local error, tonumber, concat = error, tonumber, table.concat
local plans = {}

local function plan(format)
  local found = plans[format]
  if not found then
    found = {}
    if sub(format, 1, 1) ~= '>' then
      error('only big-endian: ' .. format)
    end
    for letter, size in gmatch(sub(format, 2), '(%a)(%d*)') do
      if letter ~= 'B' and letter ~= 'I' and letter ~= 'c' or (letter == 'B') ~= (size == '') then
        error('unknown format: ' .. format)
      end
      found[#found + 1] = {text = letter == 'c', size = tonumber(size) or 1}
    end
    plans[format] = found
  end
  return found
end

local function number(value, size)
  local bytes = {}
  if value < 0 or value ~= floor(value) then
    error('not a natural number: ' .. value)
  end
  for at = size, 1, -1 do
    bytes[at] = char(value % 256)
    value = floor(value / 256)
  end
  if value > 0 then
    error('a number too large for its field')
  end
  return concat(bytes)
end

struct = {}

function struct.pack(format, ...)
  local values, parts = {...}, {}
  local items = plan(format)
  if #items ~= #values then
    error('as many values as items: ' .. format)
  end
  for at, item in ipairs(items) do
    if item.text and #values[at] < item.size then
      error('a string too short')
    end
    parts[at] = item.text and sub(values[at], 1, item.size) or number(values[at], item.size)
  end
  return concat(parts)
end

function struct.unpack(format, text, from)
  local results, at = {}, from or 1
  for _, item in ipairs(plan(format)) do
    if at + item.size - 1 > #text then
      error('data string too short')
    end
    local part = sub(text, at, at + item.size - 1)
    if not item.text then
      local sum = 0
      for digit = 1, item.size do
        sum = sum * 256 + byte(part, digit)
      end
      part = sum
    end
    results[#results + 1] = part
    at = at + item.size
  end
  results[#results + 1] = at
  return unpack(results)
end
