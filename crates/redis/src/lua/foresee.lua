-- Reads what the operation names together with what settling will look at first.
local function foresee(fields)
  if upgrading == 1 then
    fields[#fields + 1] = 'u'
  end
  if waiting > 0 then
    fields[#fields + 1] = name('w%.0f', head)
    fields[#fields + 1] = name('l%.0f', head)
  end
  fetch(fields)
end
