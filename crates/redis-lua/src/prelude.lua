local pcall, xpcall, resume, thrown, collect, compile, concat = ...

local function caught(ok, ...)
  if ok then return ok, ... end
  local e = ...
  if type(e) ~= 'string' then
    e = thrown(e)
    if type(e) == 'table' then
      local text = e.err
      if type(text) == 'string' or type(text) == 'number' then e = text end
    end
  end
  return false, e
end

local function resumed(ok, ...)
  if ok then return ok, ... end
  return false, thrown((...))
end

return {
  pcall = function(...) return caught(pcall(...)) end,
  xpcall = function(f, handler)
    return xpcall(f, function(e) return handler(thrown(e)) end)
  end,
  resume = function(...) return resumed(resume(...)) end,
  collectgarbage = function(option, ...)
    if option == nil or option == 'collect' or option == 'count' or option == 'step' then
      return collect(option, ...)
    end
    if option == 'stop' or option == 'restart' then return 0 end
    if option == 'setpause' or option == 'setstepmul' then return 200 end
    return collect(option, ...)
  end,
  load = function(f, name)
    local pieces = {}
    while true do
      local piece = f()
      if piece == nil or piece == '' then break end
      if type(piece) ~= 'string' then return nil, 'reader function must return a string' end
      pieces[#pieces + 1] = piece
    end
    return compile(concat(pieces), name or '=(load)')
  end,
  protected = function(...) return pcall(...) end,
  run = function(f, handler, ...)
    local values, count = {...}, select('#', ...)
    return xpcall(function() return f(unpack(values, 1, count)) end, handler)
  end,
}
